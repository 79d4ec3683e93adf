resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ host = "*.acme.example" }]
}
