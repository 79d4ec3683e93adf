resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ cidr = "169.254.169.254" }]
}
