variable "image" {
  type        = string
  description = "Image by digest, or an image id."
}

# Everything that is left out is closed, capped or bounded.
resource "sandboxio_template" "minimal" {
  name   = "minimal"
  image  = var.image
  reaper = sandboxio_reaper_schedule.sweep.name
}

resource "sandboxio_template" "python" {
  name         = "python"
  image        = var.image
  trust        = "trusted"
  trust_reason = "code of our own repository, reviewed before it is merged"
  lifetime     = "15m"

  resources = {
    cpu_millis = 2000
    memory_mib = 1024
  }

  network_policy = sandboxio_network_policy.closed.canonical

  env     = { PYTHONUNBUFFERED = "1" }
  secrets = ["API_TOKEN"] # a name; the value is given to a command when it starts
  labels  = { owner = "ml", team = "ml" }
  reaper  = sandboxio_reaper_schedule.sweep.name
}

output "manifest" {
  description = "What an agent program gives to sandbox.ParseTemplate."
  value       = sandboxio_template.python.manifest
}
