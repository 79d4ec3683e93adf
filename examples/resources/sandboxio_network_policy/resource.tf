# Nothing at all may be reached.
resource "sandboxio_network_policy" "closed" {
  name = "closed"
}

# Packages, over TLS, and nothing else. A template that takes this needs a
# backend that can enforce it (capabilities egress.host and egress.cidr); Docker
# has neither and refuses it in the plan.
resource "sandboxio_network_policy" "packages" {
  name = "packages"
  egress = [
    { host = "pypi.org", ports = [443], why = "the index" },
    { host = "files.pythonhosted.org", ports = [443], why = "the files" },
    { cidr = "203.0.113.0/24", ports = [443], why = "our mirror" },
  ]
}
