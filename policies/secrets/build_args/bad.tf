resource "docker_image" "agent" {
  name = "ghcr.io/acme/py:3.12.7"

  build {
    context    = "."
    build_args = { NPM_TOKEN = "none-of-yours" }
  }
}
