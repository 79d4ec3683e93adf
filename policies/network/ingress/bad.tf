resource "sandboxio_network_policy" "api" {
  name   = "api"
  expose = [22]
}
