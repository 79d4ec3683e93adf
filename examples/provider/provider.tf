terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxio = {
      source = "sandboxio/sandboxio"
    }
  }
}

# Without any block: the Docker Engine that the docker command would use,
# judged by the built-in rules.
provider "sandboxio" {
  docker {
    host = "unix:///var/run/docker.sock"
  }

  # Rules of your own can only add to the built-in ones.
  policy {
    sources = {
      acme = "${path.module}/policies"
    }
  }
}
