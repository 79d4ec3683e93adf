data "sandboxio_backend" "docker" {
  name = "docker"
}

output "can_keep_schedules" {
  value = contains(data.sandboxio_backend.docker.capabilities, "schedule")
}
