resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ cidr = "8.8.8.8", ports = [53] }]
}
