{{/*
The programs' configuration files. Each says only what the values say; what is not there holds by the
program's own default.
*/}}

{{/*
Secret and user of a Kafka client (root, client), as YAML. The job of the topics and weir check, where nothing is said of
them, are the aggregator's, which may read all topics.
*/}}
{{- define "weir.kafkaClient" -}}
{{- $k := .root.Values.kafka -}}
{{- $own := index $k.clients .client | default dict -}}
{{- $secret := $own.secret | default $k.secret -}}
{{- $username := $own.username | default $k.sasl.username -}}
{{- if has .client (list "topics" "check") -}}
{{- $secret = $secret | default $k.clients.aggregator.secret -}}
{{- $username = $username | default $k.clients.aggregator.username -}}
{{- end -}}
secret: {{ $secret | quote }}
username: {{ $username | quote }}
{{- end }}

{{/* tls as the programs read it: values, dir of the files ("" where they stay keys of the Secret). */}}
{{- define "weir.tls" -}}
enabled: true
{{- range $file := list "caFile" "certFile" "keyFile" }}
{{- with index $.tls $file }}
{{ $file }}: {{ printf "%s%s" $.dir . | quote }}
{{- end }}
{{- end }}
{{- with .tls.serverName }}
serverName: {{ . | quote }}
{{- end }}
{{- end }}

{{/* kafka as the programs read it: root, client, dir. */}}
{{- define "weir.kafka" -}}
{{- $k := .root.Values.kafka -}}
{{- $client := include "weir.kafkaClient" . | fromYaml -}}
{{- $out := dict "brokers" $k.brokers -}}
{{- if $k.tls.enabled }}{{ $_ := set $out "tls" (include "weir.tls" (dict "tls" $k.tls "dir" .dir) | fromYaml) }}{{ end -}}
{{- if $k.sasl.mechanism -}}
{{- $_ := set $out "sasl" (dict "mechanism" $k.sasl.mechanism "username" $client.username "passwordFile" (printf "%s%s" .dir $k.sasl.passwordFile)) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $out (deepCopy $k.config)) -}}
{{- end }}

{{- define "weir.redis" -}}
{{- $r := .Values.redis -}}
{{- $dir := "/etc/weir/redis/" -}}
{{- $out := dict "addresses" $r.addresses -}}
{{- if $r.cluster }}{{ $_ := set $out "cluster" true }}{{ end -}}
{{- with $r.username }}{{ $_ := set $out "username" . }}{{ end -}}
{{- with $r.passwordFile }}{{ $_ := set $out "passwordFile" (printf "%s%s" $dir .) }}{{ end -}}
{{- if $r.tls.enabled }}{{ $_ := set $out "tls" (include "weir.tls" (dict "tls" $r.tls "dir" $dir) | fromYaml) }}{{ end -}}
{{- if $r.sentinel.master -}}
{{- $s := dict "master" $r.sentinel.master -}}
{{- with $r.sentinel.username }}{{ $_ := set $s "username" . }}{{ end -}}
{{- with $r.sentinel.passwordFile }}{{ $_ := set $s "passwordFile" (printf "%s%s" $dir .) }}{{ end -}}
{{- $_ := set $out "sentinel" $s -}}
{{- end -}}
{{- toYaml $out -}}
{{- end }}

{{- define "weir.config.aggregator" -}}
{{- $kafka := include "weir.kafka" (dict "root" . "client" "aggregator" "dir" "/etc/weir/kafka/") | fromYaml -}}
{{- $out := dict
  "identityKeyFile" (printf "/etc/weir/identity/%s" .Values.identity.key)
  "topics" (pick .Values.topics "partitions" "replication" "minInSync" "usageRetention")
  "kafka" $kafka
  "redis" (include "weir.redis" . | fromYaml)
  "admin" (dict "address" "tcp://127.0.0.1:9193" "metricsAddress" "tcp://0.0.0.0:9194")
  "log" (dict "level" .Values.aggregator.logLevel) -}}
{{- toYaml (mergeOverwrite $out (deepCopy .Values.aggregator.config)) -}}
{{- end }}

{{/* What topics ensure reads: its own Kafka client, and the topics. */}}
{{- define "weir.config.topics" -}}
{{- $out := dict
  "topics" (pick .Values.topics "partitions" "replication" "minInSync" "usageRetention")
  "kafka" (include "weir.kafka" (dict "root" . "client" "topics" "dir" "/etc/weir/kafka/") | fromYaml) -}}
{{- with .Values.aggregator.config.group }}{{ $_ := set $out "group" . }}{{ end -}}
{{- toYaml $out -}}
{{- end }}

{{/* What weir check reads. */}}
{{- define "weir.config.check" -}}
{{- toYaml (dict
  "identityKeyFile" (printf "/etc/weir/identity/%s" .Values.identity.key)
  "kafka" (include "weir.kafka" (dict "root" . "client" "check" "dir" "/etc/weir/kafka/") | fromYaml)
  "topics" (pick .Values.topics "partitions" "replication" "minInSync" "usageRetention")
  "redis" (include "weir.redis" . | fromYaml)
  "kubernetes" (dict "namespace" .Release.Namespace "identitySecret" (include "weir.identitySecret" .) "certificateSecret" .Values.injection.certificates.secret)) -}}
{{- end }}

{{- define "weir.config.injector" -}}
{{- $s := .Values.sidecar -}}
{{- $client := include "weir.kafkaClient" (dict "root" . "client" "sidecar") | fromYaml -}}
{{- $requests := $s.resources.requests | default dict -}}
{{- $limits := $s.resources.limits | default dict -}}
{{- $out := dict
  "image" (include "weir.image" (dict "root" . "part" "sidecar"))
  "mode" $s.mode
  "listen" $s.listen
  "resources" (dict
    "cpuRequest" (toString ($requests.cpu | default "")) "cpuLimit" (toString ($limits.cpu | default ""))
    "memoryRequest" (toString ($requests.memory | default "")) "memoryLimit" (toString ($limits.memory | default "")))
  "identitySecret" (include "weir.identitySecret" .)
  "identityKey" .Values.identity.key
  "kafka" (include "weir.kafka" (dict "root" . "client" "sidecar" "dir" "") | fromYaml)
  "logLevel" $s.logLevel -}}
{{- with .Values.image.pullPolicy }}{{ $_ := set $out "pullPolicy" . }}{{ end -}}
{{- with $client.secret }}{{ $_ := set $out "kafkaSecret" . }}{{ end -}}
{{- with $s.foreignTargets }}{{ $_ := set $out "foreignTargets" . }}{{ end -}}
{{- toYaml (mergeOverwrite $out (deepCopy $s.config)) -}}
{{- end }}

{{- define "weir.config.controller" -}}
{{- $v := .Values -}}
{{- $certificates := dict "mode" "SelfManaged" "secret" $v.injection.certificates.secret -}}
{{- if ne $v.injection.certificates.mode "SelfManaged" -}}
{{- $certificates = dict "mode" "Files" "directory" "/etc/weir/certificates" -}}
{{- end -}}
{{- $injection := dict "enabled" $v.injection.enabled -}}
{{- if $v.injection.enabled -}}
{{- $injection = dict "enabled" true "settings" "/etc/weir/injector/settings.yaml" "address" "tcp://0.0.0.0:9443" "certificates" $certificates -}}
{{- end -}}
{{- $sidecar := include "weir.kafkaClient" (dict "root" . "client" "sidecar") | fromYaml -}}
{{- $out := dict
  "namespace" .Release.Namespace
  "identityKeyFile" (printf "/etc/weir/identity/%s" $v.identity.key)
  "kafka" (include "weir.kafka" (dict "root" . "client" "controller" "dir" "/etc/weir/kafka/") | fromYaml)
  "secrets" (dict "identity" (include "weir.identitySecret" .) "kafka" $sidecar.secret)
  "injection" $injection
  "metrics" (dict "address" "tcp://0.0.0.0:9196")
  "admin" (dict "address" "tcp://127.0.0.1:9195")
  "log" (dict "level" $v.controller.logLevel) -}}
{{- with $v.controller.watchNamespaces }}{{ $_ := set $out "watchNamespaces" . }}{{ end -}}
{{- toYaml (mergeOverwrite $out (deepCopy $v.controller.config)) -}}
{{- end }}
