{{/*
What no schema can say: settings that need one another. Each line names the value and the remedy; all are told at once.
*/}}
{{- define "weir.checks" -}}
{{- $wrong := list -}}
{{- range $part := list "kafka" "acls" "redis" "secrets" "topics" "identity" "injection" "pods" "monitoring" "labels" -}}
{{- $wrong = concat $wrong (include (printf "weir.checks.%s" $part) $ | fromYamlArray) -}}
{{- end -}}
{{- if $wrong }}{{ fail (printf "\n\nWhat the values lack or what does not fit:\n  - %s\n" (join "\n  - " $wrong)) }}{{ end -}}
{{- end }}

{{/* Programs that connect to Kafka, those that are on: a YAML list. */}}
{{- define "weir.checks.clients" -}}
{{- $clients := list "aggregator" "controller" -}}
{{- if .Values.injection.enabled }}{{ $clients = append $clients "sidecar" }}{{ end -}}
{{- if .Values.topics.ensure }}{{ $clients = append $clients "topics" }}{{ end -}}
{{- if .Values.test.enabled }}{{ $clients = append $clients "check" }}{{ end -}}
{{- toYaml $clients -}}
{{- end }}

{{- define "weir.checks.kafka" -}}
{{- $k := .Values.kafka -}}
{{- $wrong := include "weir.checks.tls" (dict "name" "kafka" "tls" $k.tls) | fromYamlArray -}}
{{- if not $k.brokers -}}
{{- $wrong = append $wrong "kafka.brokers: none given. Name brokers to start from, for example --set 'kafka.brokers={kafka-0.kafka:9092}'." -}}
{{- end -}}
{{- $users := list -}}
{{- $files := and $k.tls.enabled (or $k.tls.caFile $k.tls.certFile $k.tls.keyFile) -}}
{{- range $name := include "weir.checks.clients" . | fromYamlArray -}}
{{- $client := include "weir.kafkaClient" (dict "root" $ "client" $name) | fromYaml -}}
{{- if and (or $files $k.sasl.mechanism) (not $client.secret) -}}
{{- $wrong = append $wrong (printf "kafka.clients.%s.secret: the files of kafka.tls and the password of kafka.sasl are keys of a Secret, and none is named. Set it, or kafka.secret for all." $name) -}}
{{- end -}}
{{- if and $k.sasl.mechanism (not $client.username) -}}
{{- $wrong = append $wrong (printf "kafka.clients.%s.username: kafka.sasl.mechanism needs a user. Set it, or kafka.sasl.username for all." $name) -}}
{{- end -}}
{{- with $client.username }}{{ $users = append $users . }}{{ end -}}
{{- end -}}
{{- if and $users (not $k.sasl.mechanism) -}}
{{- $wrong = append $wrong (printf "kafka.sasl.mechanism: without it no program logs in as %s. Set it, or leave the users out." (uniq $users | join ", ")) -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{/* What is set of TLS without being in use: name, tls. */}}
{{- define "weir.checks.tls" -}}
{{- $wrong := list -}}
{{- $set := pick .tls "caFile" "certFile" "keyFile" "serverName" -}}
{{- range $key := keys $set | sortAlpha -}}
{{- if and (get $set $key) (not $.tls.enabled) -}}
{{- $wrong = append $wrong (printf "%s.tls.%s: connections are not encrypted. Set %s.tls.enabled, or leave it out." $.name $key $.name) -}}
{{- end -}}
{{- end -}}
{{- if ne (empty .tls.certFile) (empty .tls.keyFile) -}}
{{- $wrong = append $wrong (printf "%s.tls: certFile and keyFile go together. Set both, for mutual TLS, or neither." .name) -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{/* Rights go to principals, which under SASL are the users. */}}
{{- define "weir.checks.acls" -}}
{{- $wrong := list -}}
{{- $acls := .Values.topics.acls -}}
{{- if and .Values.topics.ensure $acls.enabled .Values.kafka.sasl.mechanism -}}
{{- range $name := list "aggregator" "controller" "sidecar" "check" -}}
{{- $user := (include "weir.kafkaClient" (dict "root" $ "client" $name) | fromYaml).username -}}
{{- if eq $name "check" }}{{ $user = $.Values.kafka.clients.check.username }}{{ end -}}
{{- $principal := get $acls $name -}}
{{- if and $user $principal (ne $principal (printf "User:%s" $user)) -}}
{{- $wrong = append $wrong (printf "topics.acls.%s: the rights would be %s's, and it logs in as %s. Set it to User:%s, or kafka.clients.%s.username." $name $principal $user $user $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{- define "weir.checks.redis" -}}
{{- $r := .Values.redis -}}
{{- $wrong := include "weir.checks.tls" (dict "name" "redis" "tls" $r.tls) | fromYamlArray -}}
{{- if not $r.addresses -}}
{{- $wrong = append $wrong "redis.addresses: none given. Name the server, nodes of the cluster, or sentinels, for example --set 'redis.addresses={redis.redis:6379}'." -}}
{{- end -}}
{{- if and (or $r.passwordFile $r.sentinel.passwordFile (and $r.tls.enabled (or $r.tls.caFile $r.tls.certFile $r.tls.keyFile))) (not $r.secret) -}}
{{- $wrong = append $wrong "redis.secret: redis.passwordFile and the files of redis.tls and redis.sentinel are keys of a Secret, and none is named." -}}
{{- end -}}
{{- if and $r.username (not $r.passwordFile) -}}
{{- $wrong = append $wrong "redis.passwordFile: without it nobody logs in as redis.username. Name the key of redis.secret." -}}
{{- end -}}
{{- if and $r.cluster $r.sentinel.master -}}
{{- $wrong = append $wrong "redis.cluster: the addresses are nodes of a cluster or sentinels, not both. Leave out one of redis.cluster and redis.sentinel.master." -}}
{{- end -}}
{{- if and (or $r.sentinel.username $r.sentinel.passwordFile) (not $r.sentinel.master) -}}
{{- $wrong = append $wrong "redis.sentinel.master: without it the addresses are no sentinels. Name the master set, or leave out the rest of redis.sentinel." -}}
{{- end -}}
{{- if and $r.sentinel.username (not $r.sentinel.passwordFile) -}}
{{- $wrong = append $wrong "redis.sentinel.passwordFile: without it nobody logs in as redis.sentinel.username. Name the key of redis.secret." -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{/* The Secrets that are copied into the namespaces of injected pods hold nothing that is not theirs. */}}
{{- define "weir.checks.secrets" -}}
{{- $wrong := list -}}
{{- $identity := include "weir.identitySecret" . -}}
{{- $sidecar := (include "weir.kafkaClient" (dict "root" . "client" "sidecar") | fromYaml).secret -}}
{{- $others := dict "redis.secret" .Values.redis.secret "injection.certificates.secret" .Values.injection.certificates.secret -}}
{{- range $value, $name := $others -}}
{{- if and $name (has $name (list $identity $sidecar)) -}}
{{- $wrong = append $wrong (printf "%s: the Secret %s is copied into the namespaces of injected pods, with all that is in it. Use one of its own." $value $name) -}}
{{- end -}}
{{- end -}}
{{- $kafka := list .Values.kafka.secret -}}
{{- range $_, $client := .Values.kafka.clients }}{{ $kafka = append $kafka $client.secret }}{{ end -}}
{{- if has $identity $kafka -}}
{{- $wrong = append $wrong (printf "kafka: the Secret %s is the identity key's, which is copied into the namespaces of injected pods. Use another one for Kafka." $identity) -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{- define "weir.checks.topics" -}}
{{- $t := .Values.topics -}}
{{- if and (gt (int $t.replication) 0) (gt (int $t.minInSync) (int $t.replication)) }}
- "topics.minInSync: above topics.replication no record could be written."
{{- end }}
{{- end }}

{{- define "weir.checks.identity" -}}
{{- if and (not .Values.identity.existingSecret) (not (lookup "v1" "Namespace" "" "kube-system")) }}
- {{ printf "identity.existingSecret: this is rendered without the cluster (Argo CD, helm template), where the chart cannot see the key that it made and would make another one. Make the Secret once and name it: weir key identity.key && kubectl create secret generic weir-identity --namespace %s --from-file=identity.key" .Release.Namespace | quote }}
{{- end }}
{{- end }}

{{- define "weir.checks.injection" -}}
{{- $wrong := list -}}
{{- $c := .Values.injection.certificates -}}
{{- if and .Values.injection.enabled (eq $c.mode "Secret") -}}
{{- if not $c.caBundle -}}
{{- $wrong = append $wrong "injection.certificates.caBundle: mode Secret needs it, so that kube-apiserver trusts your certificate: --set-file injection.certificates.caBundle=ca.crt" -}}
{{- end -}}
{{- $charts := eq $c.secret "weir-webhook-tls" -}}
{{- with lookup "v1" "Secret" .Release.Namespace $c.secret -}}
{{- $charts = or $charts (eq $.Release.Name (dig "annotations" "meta.helm.sh/release-name" "" .metadata)) -}}
{{- end -}}
{{- if $charts -}}
{{- $wrong = append $wrong (printf "injection.certificates.secret: %s is the Secret that the chart makes in mode SelfManaged, and the upgrade away from that mode deletes it. Give yours another name." $c.secret) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{- define "weir.checks.pods" -}}
{{- $wrong := list -}}
{{- range $part := list "aggregator" "controller" -}}
{{- $pdb := (index $.Values $part).podDisruptionBudget -}}
{{- if and $pdb.enabled (has (toString $pdb.maxUnavailable) (list "0" "0%")) -}}
{{- $wrong = append $wrong (printf "%s.podDisruptionBudget.maxUnavailable: with %v no node could be drained. Set 1 or more, or enabled: false for no budget." $part $pdb.maxUnavailable) -}}
{{- end -}}
{{- end -}}
{{- $scaling := .Values.aggregator.autoscaling -}}
{{- if and (ne $scaling.mode "None") (gt (int $scaling.minReplicas) (int $scaling.maxReplicas)) -}}
{{- $wrong = append $wrong "aggregator.autoscaling: minReplicas is above maxReplicas." -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{- define "weir.checks.monitoring" -}}
{{- $wrong := list -}}
{{- $known := list -}}
{{- range $path, $_ := .Files.Glob "files/alerts/*.yaml" -}}
{{- range (fromYaml ($.Files.Get $path)).groups }}{{ range .rules }}{{ $known = append $known .alert }}{{ end }}{{ end -}}
{{- end -}}
{{- range .Values.monitoring.prometheusRule.disabled -}}
{{- if not (has . $known) -}}
{{- $wrong = append $wrong (printf "monitoring.prometheusRule.disabled: there is no alert %s. There are %s." . (join ", " (sortAlpha $known))) -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}

{{/* Labels by which the chart's objects find one another are not to be overridden. */}}
{{- define "weir.checks.labels" -}}
{{- $wrong := list -}}
{{- $chart := keys (include "weir.labels" (dict "root" (dict "Chart" .Chart "Release" .Release "Values" dict) "part" "any") | fromYaml) -}}
{{- range $value, $labels := dict "commonLabels" .Values.commonLabels "aggregator.podLabels" .Values.aggregator.podLabels "controller.podLabels" .Values.controller.podLabels -}}
{{- range $key := keys ($labels | default dict) | sortAlpha -}}
{{- if has $key $chart -}}
{{- $wrong = append $wrong (printf "%s: %s is the chart's own, by which its objects find one another. Use another label." $value $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $wrong -}}
{{- end }}
