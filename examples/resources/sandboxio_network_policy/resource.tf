# Nothing at all may be reached.
resource "sandboxio_network_policy" "closed" {
  name = "closed"
}

# Packages, over TLS, and nothing else, for programs that use the proxy of their
# environment. The plan shows how each rule is enforced, in mechanisms.
resource "sandboxio_network_policy" "packages" {
  name = "packages"
  mode = "proxy"
  egress = [
    { host = "pypi.org", ports = [443], why = "the index" },
    { host = "files.pythonhosted.org", ports = [443], why = "the files" },
    { cidr = "203.0.113.0/24", ports = [443], why = "our mirror" },
  ]
}
