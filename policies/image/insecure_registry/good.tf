resource "docker_registry_image" "agent" {
  name = "ghcr.io/acme/py:3.12.7"
}
