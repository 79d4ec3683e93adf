resource "docker_container" "agent" {
  name          = "agent"
  image         = "ghcr.io/acme/py@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
  network_mode  = "none"
  memory        = 512
  cpus          = "1"
  read_only     = true
  user          = "1000:1000"
  security_opts = ["no-new-privileges:true"]
  runtime       = "runsc"

  capabilities {
    drop = ["ALL"]
  }

  labels {
    label = "owner"
    value = "data"
  }
}
