resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ host = "api.example.com", ports = [443] }]
}
