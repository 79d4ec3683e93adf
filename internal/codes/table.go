package codes

import "github.com/sandboxio/terraform-provider-sandboxio/sandbox/driver"

// All explains every code, in the order of [driver.Codes].
func All() []Entry {
	return []Entry{
		{
			Code: driver.CodeInvalid, Title: "The request is malformed",
			Meaning: "A field of the request cannot mean anything, so nothing was asked of the backend. The error names the field, what is wrong with its value and the fix. Several problems come together, one error each.",
			Causes: []string{
				"a value out of its range: a negative timeout, a lifetime below a second",
				"a name that is no name: an environment variable with a dash, a label in the reserved space \"sandboxio.\"",
				"no image, on a backend that has no default one",
				"a line of an audit file that is not as it was written",
			},
			Steps: []Step{{Text: "Change the field that the error names as its fix says."}},
			Retry: "no; the same request fails the same way",
			Example: shown(driver.Error{
				Code: driver.CodeInvalid, Op: "run", Backend: "docker", Field: "timeout",
				Err: because("-5s is negative"), Hint: "leave it out for 300 s, or set a positive duration",
			}),
		},
		{
			Code: driver.CodeUnsupported, Title: "This backend cannot enforce what was asked",
			Meaning: "The backend would have to leave out a control that the request asks for, and a control that was asked for is applied or nothing is made. Also given when the isolation that was measured is below the tier that was asked for; the sandbox was destroyed then.",
			Causes: []string{
				"an isolation tier that the backend or its runtime does not reach; untrusted code needs user-kernel, untrusted code of several tenants microvm",
				"network rules on a backend without egress",
				"a detached sandbox, files or extension where the backend does not declare them",
				"an engine that lacks something sandboxes need",
			},
			Steps: []Step{
				{"See what the backend offers and what it lacks.", "sandboxio doctor"},
				{"Use a backend or runtime that can, or ask for less.", ""},
			},
			Retry: "no; another backend may do it",
			Example: shown(driver.Error{
				Code: driver.CodeUnsupported, Op: "create", Backend: "docker", Field: "isolation",
				Err: because("the backend offers container, user-kernel was asked for"), Hint: "use a backend or runtime of that tier",
			}),
		},
		{
			Code: driver.CodeDenied, Title: "A policy said no",
			Meaning: "The rules that judge every request denied this one, could not evaluate it, or are not there: a Runtime without a Guard and without a reason for that denies everything. Nothing was made. The command line ends with exit code 2.",
			Causes: []string{
				"a rule's finding; the error names the rule, the path and the message, and each rule has a page",
				"neither Options.Guard nor Options.Unguarded",
				"a template that was judged by other rules than the ones here",
				"a value that a rule reads and that is still unknown",
			},
			Steps: []Step{
				{"Read the page of the rule that the error names, in docs/policies.", ""},
				{"Change what it names, as the fix says.", ""},
				{"If the rules could not be loaded, see why.", "sandboxio doctor"},
			},
			Retry: "no; the same request is denied again",
			Example: shown(driver.Error{
				Code: driver.CodeDenied, Op: "create", Backend: "docker", Field: "network.egress[0].cidr",
				Err:  because("policy says deny; SBX-NET-002 at network.egress[0].cidr: 0.0.0.0/0 reaches every address"),
				Hint: "list the hosts that the code needs",
			}),
		},
		{
			Code: driver.CodeUnauthenticated, Title: "The provider did not accept our credentials",
			Meaning: "The engine or service answered, and wants to know better who asks.",
			Causes: []string{
				"a key, token or certificate that is missing, expired or another service's",
				"this user may not use the engine's socket",
			},
			Steps: []Step{
				{"See which engine is asked, and how it answers.", "sandboxio doctor"},
				{"Give the credentials by the environment variable or file that the provider's block names; never in an address.", ""},
			},
			Retry: "no; not before the credentials change",
			Example: shown(driver.Error{
				Code: driver.CodeUnauthenticated, Op: "create", Backend: "docker",
				Err: because("permission denied while trying to connect to unix:///var/run/docker.sock"), Hint: "add this user to the group that owns the socket, or use DOCKER_HOST",
			}),
		},
		{
			Code: driver.CodeNotFound, Title: "It never existed, as far as can be told",
			Meaning: "The backend has nothing of that name or id: a sandbox, an image, a file, a schedule. For a file the error is also fs.ErrNotExist.",
			Causes: []string{
				"an image that was not pulled: images are never pulled while a sandbox is made",
				"the guest's binary is not on the engine yet",
				"a misspelt id or path, or one of another backend",
				"a sandbox that ended so long ago that its backend forgot it",
			},
			Steps: []Step{
				{"For an image, pull it by its digest.", "docker pull IMAGE@sha256:DIGEST"},
				{"For the guest, put it on the engine.", "sandboxio setup docker"},
				{"For a sandbox, make a new one.", ""},
			},
			Retry: "no; not before it is there",
			Example: shown(driver.Error{
				Code: driver.CodeNotFound, Op: "create", Backend: "docker", Field: "helper",
				Err: because("the engine has no volume sandboxio-guest with the guest"), Hint: "sandboxio setup docker",
			}),
		},
		{
			Code: driver.CodeGone, Title: "It existed, and ended",
			Meaning: "The sandbox was there and is not any more, with everything in it. It is not a timeout: the sandbox's own deadline, its owner's end or somebody's kill ended it, and a sandbox that has ended is never started again.",
			Causes: []string{
				"its lifetime was over (300 s unless said otherwise)",
				"it was closed, here or by another process, or reaped",
				"it ran out of memory as a whole, or its engine was restarted",
				"the process that owned it ended or was stopped",
			},
			Steps: []Step{
				{"Make a new sandbox.", ""},
				{"If its time was too short, set Spec.Lifetime, or Spec.MaxLifetime and Extend.", ""},
			},
			Retry: "no; a new sandbox is needed",
			Example: shown(driver.Error{
				Code: driver.CodeGone, Op: "run", Backend: "docker", Sandbox: "4f1c0a9be27d", Err: because("the connection to the sandbox was lost"),
			}),
		},
		{
			Code: driver.CodeConflict, Title: "Somebody else holds it, or it changed under us",
			Meaning: "The request is fine and the thing is there, but not as the request supposes.",
			Causes: []string{
				"a paused sandbox, which can be killed and nothing else",
				"a volume, container or schedule that has our name and is not ours",
				"an audit file that another process has open, or that was moved, cut or written by others",
				"a clock that differs from the backend's by more than 30 s: nothing is swept then",
			},
			Steps: []Step{
				{"Look at what the error names, and free it or use another name.", ""},
				{"For an audit file, see whether it is still whole.", "sandboxio audit verify FILE"},
			},
			Retry: "once the other has let go",
			Example: shown(driver.Error{
				Code: driver.CodeConflict, Op: "audit", Field: "/var/log/sandboxio/audit.jsonl",
				Err: because("another process writes it"), Hint: "give each process a file of its own",
			}),
		},
		{
			Code: driver.CodeExhausted, Title: "Out of quota or capacity",
			Meaning: "The request is fine and there is no room for it: on the engine, in the provider's quota, or within the sandbox's own caps on disk, memory and processes.",
			Causes: []string{
				"too many sandboxes at once, or forgotten ones",
				"a disk that is full, the engine's or the sandbox's own",
				"a queue in front of a slow audit sink that is full",
			},
			Steps: []Step{
				{"See which sandboxes should be gone.", "sandboxio reap"},
				{"Remove them.", "sandboxio reap --kill"},
				{"Within a sandbox, raise the cap that was hit (disk_mib, memory_mib, pids); the policy bounds it.", ""},
			},
			Retry: "once there is room",
			Example: shown(driver.Error{
				Code: driver.CodeExhausted, Op: "write", Backend: "docker", Sandbox: "4f1c0a9be27d",
				Err: because("no space left on device"), Hint: "raise disk_mib, or remove files",
			}),
		},
		{
			Code: driver.CodeRateLimited, Title: "Slow down",
			Meaning: "The provider bounds how often it is asked. Error.RetryAfter says for how long to wait, if the provider said so. The backend has waited and tried again already where that was safe.",
			Causes:  []string{"many creations at once", "several programs with one account"},
			Steps:   []Step{{"Wait for RetryAfter, or some seconds, and spread the calls.", ""}},
			Retry:   "yes, after waiting",
			Example: shown(driver.Error{Code: driver.CodeRateLimited, Op: "create", Backend: "docker", Err: because("too many requests"), Hint: "wait and try again"}),
		},
		{
			Code: driver.CodeUnavailable, Title: "The provider did not answer",
			Meaning: "Nobody is there, or the answer makes no sense or comes too late. Also given when an operation's Record could not be kept: what cannot be recorded does not happen, and what had been made is destroyed.",
			Causes: []string{
				"the engine does not run, or DOCKER_HOST names another one",
				"a network or proxy between",
				"a sink that fails: a full disk, an audit file that is not ours any more",
			},
			Steps: []Step{
				{"See which engine is asked, and how it answers.", "sandboxio doctor"},
				{"For a sink, repair what its error names.", ""},
			},
			Retry: "yes, once it answers",
			Example: shown(driver.Error{
				Code: driver.CodeUnavailable, Op: "connect", Backend: "docker",
				Err:  because("no Docker Engine answers at unix:///var/run/docker.sock (DOCKER_HOST): nobody listens there"),
				Hint: "start the engine, as with systemctl start docker, or name another, as with DOCKER_HOST",
			}),
		},
		{
			Code: driver.CodeTimeout, Title: "Its own limit passed",
			Meaning: "A limit of the sandbox or the command ended it: Cmd.Timeout, which is 300 s unless said otherwise. The command was killed with all its descendants; Run returns what it had written until then beside the error. The caller's own deadline is never this: it stays context.DeadlineExceeded.",
			Causes: []string{
				"a command that takes longer than its timeout",
				"a command that waits for input that does not come",
			},
			Steps: []Step{
				{"Read what it wrote until then.", ""},
				{"Raise Cmd.Timeout, within the sandbox's lifetime.", ""},
			},
			Retry: "with a longer timeout",
			Example: shown(driver.Error{
				Code: driver.CodeTimeout, Op: "run", Backend: "docker", Sandbox: "4f1c0a9be27d",
				Err: because("the command ran longer than its timeout and was ended"), Hint: "raise Cmd.Timeout",
			}),
		},
		{
			Code: driver.CodeLeaked, Title: "Something may be left running",
			Meaning: "The end of a sandbox or a program could not be confirmed within the grace (5 s unless said otherwise). The error names it. It ends by itself at its deadline, and a reaper removes it then. This code counts before any other that the error holds, and before the caller's cancellation.",
			Causes: []string{
				"an engine that hangs, or that was stopped in between",
				"a grace that is too short for a slow engine",
			},
			Steps: []Step{
				{"See what is left.", "sandboxio reap"},
				{"Remove what is due.", "sandboxio reap --kill"},
				{"If the engine is slow, give teardown more time: Options.Grace, or the environment variable SANDBOXIO_TEARDOWN_GRACE.", ""},
			},
			Retry: "closing again gives the same answer; reap instead",
			Example: shown(driver.Error{
				Code: driver.CodeLeaked, Op: "close", Backend: "docker", Sandbox: "4f1c0a9be27d",
				Err:  because("teardown did not end within 5s (name sandboxio-x-1767323045)"),
				Hint: "it ends by itself at 2026-01-02T03:04:05Z; sandboxio reap --backend docker:// --kill removes it then",
			}),
		},
		{
			Code: driver.CodeInternal, Title: "A bug, ours or the provider's",
			Meaning: "Something answered in a way that nobody foresaw. What had been made was destroyed.",
			Causes: []string{
				"a guest binary that is not this release's",
				"an engine that breaks its own protocol",
				"our mistake",
			},
			Steps: []Step{
				{"See whether the engine and the guest are as they should be.", "sandboxio doctor"},
				{"Compare the versions of the command and the guest.", "sandboxio version"},
				{"Report it with the error's text and the versions; secrets have been taken out of it.", ""},
			},
			Retry: "perhaps; tell us all the same",
			Example: shown(driver.Error{
				Code: driver.CodeInternal, Op: "create", Backend: "docker",
				Err: because("what answered is not a sandboxio guest"), Hint: "sandboxio setup docker",
			}),
		},
	}
}
