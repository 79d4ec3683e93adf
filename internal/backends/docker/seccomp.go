package docker

import (
	_ "embed"
)

// seccompProfile is what every sandbox runs under: the moby project's default
// profile, narrowed by us. Engines' own defaults differ: AF_VSOCK and io_uring
// were open on one. It is generated and held by TestSeccompProfile, see there
// for what is taken out and why.
//
//go:embed seccomp.json
var seccompProfile string
