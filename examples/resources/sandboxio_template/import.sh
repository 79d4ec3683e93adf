# The manifest itself, for example from an output of another configuration.
terraform import sandboxio_template.python "$(terraform -chdir=../other output -raw manifest)"
