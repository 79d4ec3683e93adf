resource "sandboxio_template" "agent" {
  name         = "agent"
  image        = "ghcr.io/acme/py:3.12"
  trust        = "trusted"
  trust_reason = "code of our own repository, reviewed before it is merged"
  labels       = { owner = "data" }
  reaper       = "nightly"
}
