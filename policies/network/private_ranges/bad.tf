resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ cidr = "10.0.0.0/8" }]
}
