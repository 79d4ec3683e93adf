resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ host = "host.example.com", ports = [22] }]
}
