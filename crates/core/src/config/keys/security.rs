//! Addresses and credentials, which every client has.

use super::Kind::*;
use super::Status::*;
use super::{INT, Key, LONG, key, unset};

const TLS: super::Status = Later("TLS");
const SASL: super::Status = Later("SASL");
const OAUTH: super::Status = Later("SASL OAUTHBEARER");
const KERBEROS: super::Status = Later("SASL GSSAPI");
const NO_JVM: super::Status = NotApplicable("it chooses a part of the JVM");
const BROKER_SIDE: super::Status =
    NotApplicable("it concerns who checks a token, not who shows it");

#[rustfmt::skip]
pub(super) const SECURITY: &[Key] = &[
    unset("bootstrap.servers", Addresses, Effective, "Where to ask for the cluster first: `host:port`, separated by commas."),
    unset("sasl.client.callback.handler.class", AnyClass, NO_JVM, "A class that answers the mechanism's questions."),
    unset("sasl.jaas.config", Password, SASL, "The login module with its credentials."),
    key("sasl.kerberos.kinit.cmd", Text, "/usr/bin/kinit", KERBEROS, "The path of kinit."),
    key("sasl.kerberos.min.time.before.relogin", LONG, "60000", KERBEROS, "How long to wait between logins."),
    unset("sasl.kerberos.service.name", Text, KERBEROS, "The principal's name that brokers run under."),
    key("sasl.kerberos.ticket.renew.jitter", Decimal(f64::MIN, f64::MAX), "0.05", KERBEROS, "Random part of the time to renewal."),
    key("sasl.kerberos.ticket.renew.window.factor", Decimal(f64::MIN, f64::MAX), "0.8", KERBEROS, "Part of the ticket's life after which it is renewed."),
    unset("sasl.login.callback.handler.class", AnyClass, SASL, "A class that fetches the token or password."),
    unset("sasl.login.class", AnyClass, NO_JVM, "A class that logs in."),
    unset("sasl.login.connect.timeout.ms", INT, OAUTH, "How long connecting to the token's issuer may take."),
    unset("sasl.login.read.timeout.ms", INT, OAUTH, "How long its answer may take."),
    key("sasl.login.refresh.buffer.seconds", Integer(0, 3600), "300", OAUTH, "How long before its end a token is renewed at the latest."),
    key("sasl.login.refresh.min.period.seconds", Integer(0, 900), "60", OAUTH, "How long to wait between renewals."),
    key("sasl.login.refresh.window.factor", Decimal(0.5, 1.0), "0.8", OAUTH, "Part of a token's life after which it is renewed."),
    key("sasl.login.refresh.window.jitter", Decimal(0.0, 0.25), "0.05", OAUTH, "Random part of it."),
    key("sasl.login.retry.backoff.max.ms", LONG, "10000", OAUTH, "The longest wait between attempts."),
    key("sasl.login.retry.backoff.ms", LONG, "100", OAUTH, "The first wait between attempts."),
    key("sasl.mechanism", Text, "GSSAPI", SASL, "How the client shows who it is."),
    key("sasl.oauthbearer.assertion.algorithm", OneOfAnyCase(&["ES256", "RS256"]), "RS256", OAUTH, "How an assertion is signed."),
    unset("sasl.oauthbearer.assertion.claim.aud", Text, OAUTH, "Its audience."),
    key("sasl.oauthbearer.assertion.claim.exp.seconds", Integer(0, 86_400), "300", OAUTH, "How long it is valid."),
    unset("sasl.oauthbearer.assertion.claim.iss", Text, OAUTH, "Its issuer."),
    key("sasl.oauthbearer.assertion.claim.jti.include", Boolean, "false", OAUTH, "Whether it has an id."),
    key("sasl.oauthbearer.assertion.claim.nbf.seconds", Integer(0, 3600), "60", OAUTH, "How long before now it begins."),
    unset("sasl.oauthbearer.assertion.claim.sub", Text, OAUTH, "Its subject."),
    unset("sasl.oauthbearer.assertion.file", Text, OAUTH, "A file that holds it."),
    unset("sasl.oauthbearer.assertion.private.key.file", Text, OAUTH, "The file of the key that signs it."),
    unset("sasl.oauthbearer.assertion.private.key.passphrase", Password, OAUTH, "The passphrase of that key."),
    unset("sasl.oauthbearer.assertion.template.file", Text, OAUTH, "A file with further claims."),
    unset("sasl.oauthbearer.client.credentials.client.id", Text, OAUTH, "The client's id at the issuer."),
    unset("sasl.oauthbearer.client.credentials.client.secret", Password, OAUTH, "The client's secret there."),
    key("sasl.oauthbearer.clock.skew.seconds", INT, "30", BROKER_SIDE, "How far clocks may differ."),
    key("sasl.oauthbearer.expected.audience", List, "", BROKER_SIDE, "Audiences that are accepted."),
    unset("sasl.oauthbearer.expected.issuer", Text, BROKER_SIDE, "The issuer that is accepted."),
    key("sasl.oauthbearer.header.urlencode", Boolean, "false", OAUTH, "Whether id and secret are URL-encoded."),
    key("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, "3600000", BROKER_SIDE, "How often the issuer's keys are fetched."),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, "10000", BROKER_SIDE, "The longest wait between attempts."),
    key("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, "100", BROKER_SIDE, "The first wait between attempts."),
    unset("sasl.oauthbearer.jwks.endpoint.url", Text, BROKER_SIDE, "Where the issuer's keys are."),
    unset("sasl.oauthbearer.jwt.retriever.class", AnyClass, NO_JVM, "A class that fetches tokens."),
    unset("sasl.oauthbearer.jwt.validator.class", AnyClass, NO_JVM, "A class that checks tokens."),
    unset("sasl.oauthbearer.scope", Text, OAUTH, "The scope that is asked for."),
    key("sasl.oauthbearer.scope.claim.name", Text, "scope", OAUTH, "The claim that holds the scope."),
    key("sasl.oauthbearer.sub.claim.name", Text, "sub", OAUTH, "The claim that holds the subject."),
    unset("sasl.oauthbearer.token.endpoint.url", Text, OAUTH, "Where tokens are."),
    key("security.protocol", OneOfAnyCase(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), "PLAINTEXT", Effective,
        "How connections are secured. Only `PLAINTEXT` works so far."),
    key("ssl.cipher.suites", List, "", TLS, "Cipher suites that are offered."),
    key("ssl.enabled.protocols", List, "TLSv1.2,TLSv1.3", TLS, "Versions of TLS that are offered."),
    key("ssl.endpoint.identification.algorithm", Text, "https", TLS, "Whether the broker's host name is checked; empty: not."),
    unset("ssl.engine.factory.class", AnyClass, NO_JVM, "A class that makes TLS engines."),
    unset("ssl.key.password", Password, TLS, "The password of the private key."),
    key("ssl.keymanager.algorithm", Text, "SunX509", NO_JVM, "How keys are managed."),
    unset("ssl.keystore.certificate.chain", Password, TLS, "The client's certificates as PEM."),
    unset("ssl.keystore.key", Password, TLS, "The client's private key as PEM."),
    unset("ssl.keystore.location", Text, TLS, "The file with the client's key and certificates."),
    unset("ssl.keystore.password", Password, TLS, "Its password."),
    key("ssl.keystore.type", OneOfAnyCase(&["JKS", "PKCS12", "PEM"]), "JKS", TLS, "Its format."),
    key("ssl.protocol", Text, "TLSv1.3", TLS, "The version of TLS that is preferred."),
    unset("ssl.provider", Text, NO_JVM, "The security provider."),
    unset("ssl.secure.random.implementation", Text, NO_JVM, "The source of random numbers."),
    key("ssl.trustmanager.algorithm", Text, "PKIX", NO_JVM, "How trust is managed."),
    unset("ssl.truststore.certificates", Password, TLS, "Trusted certificates as PEM."),
    unset("ssl.truststore.location", Text, TLS, "The file with trusted certificates; unset: those of the system."),
    unset("ssl.truststore.password", Password, TLS, "Its password."),
    key("ssl.truststore.type", OneOfAnyCase(&["JKS", "PKCS12", "PEM"]), "JKS", TLS, "Its format."),
];
