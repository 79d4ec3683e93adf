resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ cidr = "203.0.113.0/24" }]
}
