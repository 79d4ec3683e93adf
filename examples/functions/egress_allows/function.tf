resource "sandboxio_network_policy" "mirrors" {
  name   = "mirrors"
  egress = provider::sandboxio::canonical_egress(["pypi.example.com", "*.files.example.com:443"])
}

# What must stay closed, whoever edits the list next.
check "no_way_to_the_code_host" {
  assert {
    condition     = !provider::sandboxio::egress_allows(sandboxio_network_policy.mirrors.canonical.egress, "git.example.com:443")
    error_message = "The sandboxes would reach the code host."
  }
}
