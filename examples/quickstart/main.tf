# Sandboxes for agent code: no network, a read-only root, caps, five minutes to
# live, and a schedule that removes whatever should be gone by then.
terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxio = { source = "sandboxio/sandboxio" }
  }
}

variable "image" {
  description = "Image with sh and python3, by digest or image id. Null: the backend's default."
  type        = string
  default     = null
}

variable "backend" {
  description = "Backend that makes the sandboxes: docker, or memory to try things out."
  type        = string
  default     = "docker"
}

provider "sandboxio" {
  default_backend = var.backend
  docker {}
  memory {}
}

# Nothing is listed, so nothing is reached. That is also the default; written
# here, a reviewer sees it.
resource "sandboxio_network_policy" "closed" {
  name   = "closed"
  egress = []
}

# The engine itself sweeps, with or without Terraform and agent programs.
resource "sandboxio_reaper_schedule" "sweep" {
  name     = "quickstart"
  interval = "5s"
}

resource "sandboxio_template" "agent" {
  name           = "agent"
  image          = var.image
  labels         = { owner = "platform" }
  lifetime       = "5m"
  network_policy = sandboxio_network_policy.closed.canonical
  reaper         = sandboxio_reaper_schedule.sweep.name

  resources = {
    cpu_millis = 500
    memory_mib = 256
    disk_mib   = 64
    pids       = 128
  }
}

# One detached sandbox, as an example. Runs of agent programs are not
# infrastructure: those load the manifest below.
resource "sandboxio_sandbox" "example" {
  template = sandboxio_template.agent.manifest
  lifetime = "2m"

  start = {
    command = ["sleep", "60"]
  }
}

output "manifest" {
  description = "What an agent program gives to sandbox.ParseTemplate."
  value       = sandboxio_template.agent.manifest
}

output "isolation" {
  description = "What was measured from inside, and how."
  value       = "${sandboxio_sandbox.example.isolation}: ${sandboxio_sandbox.example.evidence}"
}
