# One word a rule, for lists that come from elsewhere.
resource "sandboxio_network_policy" "mirrors" {
  name   = "mirrors"
  egress = provider::sandboxio::canonical_egress(["pypi.example.com", "*.files.example.com:443", "203.0.113.0/24:8443"])
}
