import {
  to = sandboxio_network_policy.packages
  identity = {
    id = jsonencode({ name = "packages", egress = [{ host = "pypi.org", ports = [443] }] })
  }
}
