import {
  to = sandboxio_template.python
  identity = {
    id = file("${path.module}/python.manifest.json")
  }
}
