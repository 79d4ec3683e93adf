resource "sandboxio_template" "agent" {
  name         = "agent"
  image        = "ghcr.io/acme/py@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  trust        = "trusted"
  trust_reason = "code of our own repository, reviewed before it is merged"
  labels       = { owner = "data" }
  reaper       = "nightly"
  resources    = { pids = 512 }
}
