{{/* What may be meant, and is said in the notes: a YAML list. */}}
{{- define "weir.warnings" -}}
{{- $v := .Values -}}
{{- $said := list -}}
{{- $sidecar := (include "weir.kafkaClient" (dict "root" . "client" "sidecar") | fromYaml).secret -}}
{{- $shared := list -}}
{{- range $name := list "aggregator" "controller" "topics" -}}
{{- if eq $sidecar (include "weir.kafkaClient" (dict "root" $ "client" $name) | fromYaml).secret }}{{ $shared = append $shared $name }}{{ end -}}
{{- end -}}
{{- if and $v.injection.enabled $sidecar $shared (or $v.kafka.sasl.mechanism $v.kafka.tls.certFile) -}}
{{- $said = append $said (printf "The Secret %s, with which weir's own programs (%s) log in to Kafka, is copied into the namespaces\nof injected pods. Give sidecars a user and a Secret of their own: kafka.clients.sidecar." $sidecar (join ", " $shared)) -}}
{{- end -}}
{{- $most := eq $v.aggregator.autoscaling.mode "None" | ternary $v.aggregator.replicas $v.aggregator.autoscaling.maxReplicas -}}
{{- if gt (int $most) (int $v.topics.partitions) -}}
{{- $said = append $said (printf "%d aggregators for %d partitions (topics.partitions): those above have nothing to do." (int $most) (int $v.topics.partitions)) -}}
{{- end -}}
{{- $m := $v.monitoring -}}
{{- if and $m.podMonitor.enabled (not $m.podMonitor.serviceAccount.name) (dig "metrics" "authorize" true $v.controller.config) -}}
{{- $said = append $said "Prometheus may not read the controller's metrics yet: name its account in monitoring.podMonitor.serviceAccount, or\nbind the ClusterRole weir-metrics-reader to it." -}}
{{- end -}}
{{- if and $m.prometheusRule.enabled (not $m.podMonitor.enabled) -}}
{{- $said = append $said "Alerts are made, and monitoring.podMonitor is off: without metrics by other means, job names included, they stay silent." -}}
{{- end -}}
{{- toYaml $said -}}
{{- end }}
