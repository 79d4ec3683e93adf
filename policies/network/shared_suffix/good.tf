resource "sandboxio_network_policy" "api" {
  name   = "api"
  egress = [{ host = "acme-data.s3.eu-west-1.amazonaws.com" }]
}
