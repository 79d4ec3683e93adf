import {
  to = sandboxio_network_policy.packages
  id = jsonencode({ name = "packages", egress = [{ host = "pypi.org", ports = [443] }] })
}
