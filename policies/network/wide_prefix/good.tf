resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ cidr = "198.51.100.0/24" }]
}
