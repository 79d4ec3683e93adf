resource "docker_image" "agent" {
  name = "ghcr.io/acme/py:3.12.7"

  build {
    context    = "."
    build_args = { VERSION = "3.12.7" }
  }
}
