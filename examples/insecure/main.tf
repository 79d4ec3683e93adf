# What the policy is for: terraform plan denies this, attribute by attribute.
terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxio = { source = "sandboxio/sandboxio" }
  }
}

variable "image" {
  description = "Image of the sandboxes; not looked at here."
  type        = string
  default     = null
}

variable "backend" {
  description = "Backend that would make the sandboxes."
  type        = string
  default     = "docker"
}

provider "sandboxio" {
  default_backend = var.backend
  docker {}
  memory {}
}

resource "sandboxio_network_policy" "open" {
  name = "open"
  egress = [
    { cidr = "0.0.0.0/0", ports = [443] },      # everything
    { cidr = "169.254.169.254/32" },            # the cloud's credentials
    { host = "*.com" },                         # whatever an attacker registers
    { host = "host.docker.internal" },          # the host itself
    { cidr = "10.0.0.0/8", ports = [22, 5432] } # the operator's network
  ]
}

resource "sandboxio_template" "agent" {
  name     = "agent"
  image    = "python:3.12" # a tag moves
  lifetime = "72h"
  # no reaper

  env = {
    AWS_SECRET_ACCESS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" # the key of AWS's documentation
  }
}
