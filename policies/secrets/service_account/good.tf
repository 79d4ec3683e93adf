resource "kubernetes_pod_v1" "agent" {
  metadata {
    name   = "agent"
    labels = { owner = "data" }
  }

  spec {
    active_deadline_seconds         = 600
    automount_service_account_token = false
    restart_policy                  = "Never"

    container {
      name  = "agent"
      image = "ghcr.io/acme/py@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

      resources {
        limits = {
          cpu                 = "1"
          memory              = "512Mi"
          "ephemeral-storage" = "1Gi"
        }
      }

      security_context {
        run_as_non_root            = true
        allow_privilege_escalation = false
        read_only_root_filesystem  = true

        capabilities {
          drop = ["ALL"]
        }

        seccomp_profile {
          type = "RuntimeDefault"
        }
      }
    }
  }
}
