// Package checkup is what `weir check` is made of: checks, each of which looks at one thing and returns findings, and the
// report of all of them. What is looked at is elsewhere: checkup/installation has Kafka, Redis, owners, sidecars and
// policies; checkup/cluster has Kubernetes and the mesh. Both are cut in two: collectors read facts and judge nothing;
// judgements are functions of facts and read nothing, so that tables test them.
//
// A check changes nothing, prints no secret, and may be put anywhere: what it may not read is skipped, with the reason.
package checkup
