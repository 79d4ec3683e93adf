resource "sandboxio_sandbox" "notebook" {
  template = sandboxio_template.python.manifest
  lifetime = "10m"
}

variable "api_token" {
  type      = string
  ephemeral = true # never in a plan or in the state
}

resource "sandboxio_sandbox" "worker" {
  template           = sandboxio_template.python.manifest
  lifetime           = "10m"
  recreate_on_expiry = true
  labels             = { job = "worker" }

  start = {
    command            = ["python3", "-c", "import os; print(len(os.environ['API_TOKEN']))"]
    timeout            = "9m"
    secrets_wo         = { API_TOKEN = var.api_token }
    secrets_wo_version = 1 # raise it to hand over a new value
  }
}
