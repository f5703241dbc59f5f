{{/*
What no schema can say: settings that need one another. Each line names the value and the remedy; all are told at once.
*/}}
{{- define "weir.checks" -}}
{{- $v := .Values -}}
{{- $wrong := list -}}
{{- if not $v.kafka.brokers -}}
{{- $wrong = append $wrong "kafka.brokers: none given. Name brokers to start from, for example --set 'kafka.brokers={kafka-0.kafka:9092}'." -}}
{{- end -}}
{{- if not $v.redis.addresses -}}
{{- $wrong = append $wrong "redis.addresses: none given. Name the server, nodes of the cluster, or sentinels, for example --set 'redis.addresses={redis.redis:6379}'." -}}
{{- end -}}
{{- $clients := list "aggregator" "controller" -}}
{{- if $v.injection.enabled }}{{ $clients = append $clients "sidecar" }}{{ end -}}
{{- if $v.topics.ensure }}{{ $clients = append $clients "topics" }}{{ end -}}
{{- $files := and $v.kafka.tls.enabled (or $v.kafka.tls.caFile $v.kafka.tls.certFile $v.kafka.tls.keyFile) -}}
{{- range $name := $clients -}}
{{- $client := include "weir.kafkaClient" (dict "root" $ "client" $name) | fromYaml -}}
{{- if and (or $files $v.kafka.sasl.mechanism) (not $client.secret) -}}
{{- $wrong = append $wrong (printf "kafka.clients.%s.secret: the files of kafka.tls and the password of kafka.sasl are keys of a Secret, and none is named. Set it, or kafka.secret for all." $name) -}}
{{- end -}}
{{- if and $v.kafka.sasl.mechanism (not $client.username) -}}
{{- $wrong = append $wrong (printf "kafka.clients.%s.username: kafka.sasl.mechanism needs a user. Set it, or kafka.sasl.username for all." $name) -}}
{{- end -}}
{{- end -}}
{{- if and (or $v.redis.passwordFile $v.redis.sentinel.passwordFile (and $v.redis.tls.enabled (or $v.redis.tls.caFile $v.redis.tls.certFile $v.redis.tls.keyFile))) (not $v.redis.secret) -}}
{{- $wrong = append $wrong "redis.secret: redis.passwordFile and the files of redis.tls and redis.sentinel are keys of a Secret, and none is named." -}}
{{- end -}}
{{- if and $v.injection.enabled (eq $v.injection.certificates.mode "Secret") (not $v.injection.certificates.caBundle) -}}
{{- $wrong = append $wrong "injection.certificates.caBundle: mode Secret needs it, so that kube-apiserver trusts your certificate: --set-file injection.certificates.caBundle=ca.crt" -}}
{{- end -}}
{{- if and (ne $v.aggregator.autoscaling.mode "None") (gt (int $v.aggregator.autoscaling.minReplicas) (int $v.aggregator.autoscaling.maxReplicas)) -}}
{{- $wrong = append $wrong "aggregator.autoscaling: minReplicas is above maxReplicas." -}}
{{- end -}}
{{- if gt (int $v.topics.minInSync) (int $v.topics.replication) -}}
{{- if gt (int $v.topics.replication) 0 -}}
{{- $wrong = append $wrong "topics.minInSync: above topics.replication no record could be written." -}}
{{- end -}}
{{- end -}}
{{- if and (not $v.identity.existingSecret) (not (lookup "v1" "Namespace" "" "kube-system")) -}}
{{- $wrong = append $wrong (printf "identity.existingSecret: this is rendered without the cluster (Argo CD, helm template), where the chart cannot see the key that it made and would make another one. Make the Secret once and name it: weir key identity.key && kubectl create secret generic weir-identity --namespace %s --from-file=identity.key" .Release.Namespace) -}}
{{- end -}}
{{- if $wrong }}{{ fail (printf "\n\nWhat the values lack or what does not fit:\n  - %s\n" (join "\n  - " $wrong)) }}{{ end -}}
{{- end }}
