package drivertest

// Shell says the probes in a POSIX shell, coreutils and Python 3.
func Shell() Programs {
	sh := func(script string) []string { return []string{"sh", "-c", script, "probe"} }
	py := func(script string) []string { return []string{"python3", "-c", script} }
	return Programs{
		Args:     sh(`printf '%s\0' "$@"`),
		Environ:  py("import os, sys\nfor k, v in os.environb.items(): sys.stdout.buffer.write(k + b'=' + v + b'\\0')"),
		Getenv:   py("import os, sys\nsys.stdout.buffer.write(os.environb[os.fsencode(sys.argv[1])])"),
		Hash:     py("import hashlib, os, sys\nsys.stdout.write(hashlib.sha256(os.environb[os.fsencode(sys.argv[1])]).hexdigest())"),
		Pwd:      {"pwd"},
		Exit:     sh(`exit "$1"`),
		Raise:    sh(`kill -"$1" $$`),
		Copy:     {"cat"},
		Swallow:  {"wc", "-c"},
		Both:     sh(`printf %s "$1"; printf %s "$2" >&2`),
		Bytes:    py("import sys\nsys.stdout.buffer.write(bytes(range(256)))"),
		Flood:    sh(`exec head -c "$1" /dev/zero`),
		Hang:     sh(`echo ready; exec sleep 1000`),
		Stubborn: py(stubborn),
		Deaf:     sh(`exec <&-; echo ready; exec sleep 1000`),
		Beat:     sh(`while printf . >>"$1"; do sleep 0.05; done`),
		Daemon:   py(daemon),
		Jobs:     py(jobs),
		Count:    {"seq"},
		Leave:    sh(`sleep 300 & echo hi`),
		Write:    py(errnoOf + "run(lambda: open(sys.argv[1], 'ab').write(b'x'))"),
		Link:     {"ln", "-s", "--"},
		Fifo:     {"mkfifo", "--"},
		Fetch:    py(fetch),
		Proxied:  py(proxied),
		Resolve: py("import socket, sys\n" +
			"try: socket.getaddrinfo(sys.argv[1].encode(), 80)\n" +
			"except OSError as e: print(e); sys.exit(6)"),
		Fork:     py(fork),
		Hog:      py("import sys\nb = b'x' * (int(sys.argv[1]) << 20)\nsys.stdout.write('held')"),
		Fill:     py(errnoOf + fill),
		Burn:     py(burn),
		Cmdlines: py("import glob, sys\nfor f in glob.glob('/proc/[0-9]*/cmdline'):\n  try: sys.stdout.buffer.write(open(f, 'rb').read() + b'\\n')\n  except OSError: pass"),
		Status:   {"cat", "/proc/self/status"},
		Kernel:   {"cat", "/proc/sys/kernel/random/boot_id"},
	}
}

const errnoOf = `import os, sys
def run(f):
    try: f()
    except OSError as e: sys.exit(e.errno & 0x7f)
`

// The daemon leaves its parent's session and process group, and its parent
// ends; "ready" comes when it has begun to beat.
const daemon = `import os, sys, time
name = sys.argv[1]
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        while True:
            with open(name, 'ab') as f: f.write(b'.')
            time.sleep(0.05)
    os._exit(0)
os.wait()
while not os.path.exists(name) or os.path.getsize(name) == 0: time.sleep(0.01)
print('ready', flush=True)
time.sleep(1000)
`

// A job is what a shell with job control makes of a background command.
const jobs = `import os, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)
    while True:
        with open(sys.argv[1], 'ab') as f: f.write(b'.')
        time.sleep(0.05)
print('ready', flush=True)
time.sleep(1000)
`

const stubborn = `import signal, time
for s in range(1, signal.NSIG):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
print('ready', flush=True)
end = time.monotonic() + 1000
while time.monotonic() < end: time.sleep(1)
`

// What comes before the empty line is the proxy's, and says whether it lets
// through what comes after.
const proxied = `import os, socket, sys, urllib.parse
to = sys.argv[1]
try:
    at = urllib.parse.urlsplit(os.environ['HTTP_PROXY'])
    s = socket.create_connection((at.hostname, at.port), 5)
    s.sendall(('CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' % (to, to)).encode())
    s.settimeout(15)
    b = b''
    while b'\r\n\r\n' not in b:
        got = s.recv(4096)
        if not got: raise OSError('the proxy hung up')
        b += got
    if b' 200 ' not in b.split(b'\r\n', 1)[0]: raise OSError(b.decode('latin-1'))
    b = b.split(b'\r\n\r\n', 1)[1]
    while not b:
        b = s.recv(4096)
        if not b: raise OSError('nothing came')
except (KeyError, OSError) as e:
    print(e, file=sys.stderr); sys.exit(7)
sys.stdout.buffer.write(b)
`

const fetch = `import socket, sys
host, _, port = sys.argv[1].rpartition(':')
try:
    s = socket.create_connection((host.strip('[]').encode(), int(port)), 3)
    s.settimeout(3)
    said = s.recv(64)
except OSError as e: print(e); sys.exit(7)
sys.stdout.buffer.write(said)
sys.exit(0 if said else 7)
`

// Work is counted in pieces of about a millisecond, and each is worth what the
// fastest took: a kernel may not tell the time that a program had from the time
// that it stood still.
const burn = `import time
now = time.perf_counter
def piece(n):
    start = now()
    for _ in range(n): pass
    return now() - start
size = 1000
while piece(size) < 0.001: size *= 2
pieces, best, end = 0, 1, now() + 1
while now() < end:
    best = min(best, piece(size))
    pieces += 1
print(int(pieces * best * 1000))
`

const fork = `import os, signal, sys, time
kids = []
try:
    for _ in range(int(sys.argv[1])):
        pid = os.fork()
        if pid == 0: time.sleep(60); os._exit(0)
        kids.append(pid)
except OSError: pass
print(len(kids), flush=True)
for pid in kids: os.kill(pid, signal.SIGKILL)
for pid in kids: os.waitpid(pid, 0)
`

const fill = `written = 0
def write():
    global written
    try:
        with open(sys.argv[1], 'wb', buffering=0) as f:
            for _ in range(int(sys.argv[2])):
                if f.write(b'x' * (1 << 20)) < 1 << 20: f.write(b'x')
                written += 1
    finally:
        print(written, flush=True)
        try: os.unlink(sys.argv[1])
        except OSError: pass
run(write)
`
