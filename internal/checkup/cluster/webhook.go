package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weirproxy/weir/internal/checkup"
	"github.com/weirproxy/weir/internal/inject"
)

func webhooks() kind {
	return of("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")
}
func secrets() kind        { return of("", "v1", "secrets") }
func endpointSlices() kind { return of("discovery.k8s.io", "v1", "endpointslices") }

// expirySoon is when a certificate should have been renewed long ago: the controller does so a month before.
const expirySoon = 7 * 24 * time.Hour

// webhook is the check kubernetes.webhook.
func (c *Checks) webhook(ctx context.Context) []checkup.Finding {
	w, err := object[admissionv1.MutatingWebhookConfiguration](ctx, c.kubernetes, webhooks(), "", injectorName)
	if apierrors.IsNotFound(err) {
		a := c.asked(ctx)
		if a.err != nil && len(a.enabled) == 0 {
			return cannot("list", namespaces(), "", a.err)
		}
		return judgeNoWebhook(a.enabled)
	}
	if err != nil {
		return cannot("get", webhooks(), "", err)
	}
	out := judgeWebhook(w)
	out = append(out, c.certificate(ctx, w)...)
	slices, err := objects[discoveryv1.EndpointSlice](ctx, c.kubernetes, endpointSlices(), c.cfg.Namespace, discoveryv1.LabelServiceName+"="+webhookName)
	if err != nil {
		out = append(out, cannot("list", endpointSlices(), c.cfg.Namespace, err)...)
	} else {
		out = append(out, judgeEndpoints(slices, c.cfg.Namespace)...)
	}
	return checkup.OrOkay(out, "the injector is registered, has endpoints, and its certificate is of the authority that kube-apiserver was told")
}

func judgeNoWebhook(asking []string) []checkup.Finding {
	if len(asking) == 0 {
		return []checkup.Finding{checkup.Skip("", "injection is not installed, and no namespace asks for it")}
	}
	return []checkup.Finding{checkup.Fail("helm upgrade with injection.enabled, or take the label "+inject.Label+" away",
		"there is no MutatingWebhookConfiguration %s, so pods get no sidecar in %s", injectorName, names(asking))}
}

func judgeWebhook(w *admissionv1.MutatingWebhookConfiguration) []checkup.Finding {
	if len(w.Webhooks) == 0 {
		return []checkup.Finding{checkup.Fail("helm upgrade", "MutatingWebhookConfiguration %s has no webhook", injectorName)}
	}
	var out []checkup.Finding
	for _, h := range w.Webhooks {
		if len(h.ClientConfig.CABundle) == 0 {
			out = append(out, checkup.Fail("the leading controller writes it (its log says why not), or cert-manager, or the value injection.certificates.caBundle",
				"webhook %s has no authority (caBundle), so kube-apiserver cannot call it and pods get no sidecar", h.Name))
		}
		if h.FailurePolicy == nil || *h.FailurePolicy != admissionv1.Ignore {
			out = append(out, checkup.Warn("set failurePolicy: Ignore: helm upgrade", "webhook %s stops all pods that ask for a sidecar while no controller answers", h.Name))
		}
	}
	return out
}

// certificate looks at the serving certificate of the Secret.
func (c *Checks) certificate(ctx context.Context, w *admissionv1.MutatingWebhookConfiguration) []checkup.Finding {
	s, err := object[corev1.Secret](ctx, c.kubernetes, secrets(), c.cfg.Namespace, c.cfg.CertificateSecret)
	switch {
	case apierrors.IsNotFound(err):
		return []checkup.Finding{checkup.Skip("", "there is no Secret %s: the certificate of the injector, in files of its own, is not looked at", c.cfg.CertificateSecret)}
	case err != nil:
		return cannot("get", secrets(), c.cfg.Namespace, err)
	}
	var out []checkup.Finding
	sc := serving{secret: s.Name, pem: s.Data[corev1.TLSCertKey], host: webhookName + "." + c.cfg.Namespace + ".svc"}
	for _, h := range w.Webhooks {
		if len(h.ClientConfig.CABundle) > 0 {
			out = append(out, judgeCertificate(h.Name, h.ClientConfig.CABundle, sc, c.cfg.Now())...)
		}
	}
	return out
}

// serving is a certificate, PEM, that a Secret holds for a host.
type serving struct {
	secret string
	pem    []byte
	host   string
}

// judgeCertificate holds a serving certificate against the authorities that kube-apiserver was told, PEM.
func judgeCertificate(webhook string, bundle []byte, s serving, now time.Time) []checkup.Finding {
	renew := "delete Secret " + s.secret + ": the leading controller makes a new one; with cert-manager or your own, renew it there"
	leaf, others, err := chain(s.pem)
	if err != nil {
		return []checkup.Finding{checkup.Fail(renew, "Secret %s: %s: %v", s.secret, corev1.TLSCertKey, err)}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return []checkup.Finding{checkup.Fail(renew, "webhook %s: its authority (caBundle) is no certificate", webhook)}
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: others, DNSName: s.host, CurrentTime: now})
	if err != nil {
		return []checkup.Finding{checkup.Fail(renew, "webhook %s: kube-apiserver refuses the certificate of %s: %v", webhook, s.host, err)}
	}
	if left := leaf.NotAfter.Sub(now); left < expirySoon {
		return []checkup.Finding{checkup.Warn(renew, "webhook %s: its certificate ends in %v", webhook, left.Round(time.Hour))}
	}
	return nil
}

// chain reads a PEM file of a certificate and those that signed it.
func chain(data []byte) (leaf *x509.Certificate, others *x509.CertPool, err error) {
	others = x509.NewCertPool()
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return nil, nil, err
		case leaf == nil:
			leaf = cert
		default:
			others.AddCert(cert)
		}
	}
	if leaf == nil {
		return nil, nil, fmt.Errorf("there is no certificate in it")
	}
	return leaf, others, nil
}

func judgeEndpoints(slices []discoveryv1.EndpointSlice, namespace string) []checkup.Finding {
	for _, s := range slices {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				return nil
			}
		}
	}
	return []checkup.Finding{checkup.Fail("kubectl -n "+namespace+" get pods: a controller has to be ready", "Service %s has no ready endpoint, so pods get no sidecar", webhookName)}
}
