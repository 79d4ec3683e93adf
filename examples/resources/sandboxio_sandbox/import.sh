# <backend>/<id> of a detached sandbox that was made from a template
terraform import sandboxio_sandbox.notebook docker/0123456789abcdef
