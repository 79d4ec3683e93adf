resource "sandboxio_template" "agent" {
  name      = "agent"
  image     = "ghcr.io/acme/py@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  trust     = "untrusted"
  labels    = { owner = "data" }
  reaper    = "nightly"
  isolation = "container"
}
