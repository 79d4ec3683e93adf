resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ host = "github.com", why = "clone acme/*" }]
}
