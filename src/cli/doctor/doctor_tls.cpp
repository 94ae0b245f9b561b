#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "cli/doctor/doctor_checks.hpp"

namespace sluice {
namespace {

using Status = Check::Status;

struct Free {
  void operator()(std::FILE* file) const { std::fclose(file); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

template <class T>
using Owned = std::unique_ptr<T, Free>;

/// Whole days from `now` until `time`, which must be later.
int days_until(const ASN1_TIME* time, std::time_t now) {
  const std::unique_ptr<ASN1_TIME, decltype(&ASN1_STRING_free)> from(ASN1_TIME_set(nullptr, now),
                                                                     &ASN1_STRING_free);
  int days = 0;
  int seconds = 0;
  ASN1_TIME_diff(&days, &seconds, from.get(), time);
  return days;
}

}  // namespace

void check_tls(Checks& out, const ServeConfig& config, std::chrono::system_clock::time_point now) {
  constexpr int kSoon = 30;
  const auto add = [&](Status status, std::string finding, std::string fix) {
    out.push_back({status, "tls", std::move(finding), std::move(fix)});
  };
  if (config.tls_certificate.empty()) {
    add(Status::ok, "not used", "");
    return;
  }
  const auto open = [&](const std::string& path) {
    Owned<std::FILE> file(std::fopen(path.c_str(), "re"));
    if (!file) {
      add(Status::fail, path + ": " + std::strerror(errno),
          "Give a PEM file that this user can read");
    }
    return file;
  };
  const Owned<std::FILE> certificate_file = open(config.tls_certificate);
  if (!certificate_file) return;
  const Owned<std::FILE> key_file = open(config.tls_key);
  if (!key_file) return;
  const Owned<X509> certificate(PEM_read_X509(certificate_file.get(), nullptr, nullptr, nullptr));
  // Does not ask for a password: nobody is there to type it when a server starts.
  const Owned<EVP_PKEY> key(PEM_read_PrivateKey(
      key_file.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr));
  const bool matches =
      certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!certificate) {
    add(Status::fail, config.tls_certificate + " contains no PEM certificate",
        "Give the certificate chain that your certificate authority issued, in PEM");
    return;
  }
  if (!key) {
    add(Status::fail, config.tls_key + " contains no PEM private key without a password",
        "Remove the password: openssl pkey -in " + config.tls_key + " -out new.pem");
    return;
  }
  if (!matches) {
    add(Status::fail, config.tls_key + " is not the key of " + config.tls_certificate,
        "Give a certificate and a key that belong together");
    return;
  }
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate.get());
  if (X509_cmp_time(X509_get0_notBefore(certificate.get()), &seconds) > 0) {
    add(Status::fail, config.tls_certificate + " is not valid yet", "Check this machine's clock");
    return;
  }
  if (X509_cmp_time(end, &seconds) < 0) {
    add(Status::fail, config.tls_certificate + " has expired", "Renew the certificate");
    return;
  }
  const int days = days_until(end, seconds);
  struct stat info{};
  if (::stat(config.tls_key.c_str(), &info) == 0 && (info.st_mode & 077U) != 0) {
    add(Status::warn, config.tls_key + " can be read by others", "chmod 600 " + config.tls_key);
    return;
  }
  const std::string finding =
      config.tls_certificate + ", valid for " + std::to_string(days) + " more days";
  add(days < kSoon ? Status::warn : Status::ok, finding,
      days < kSoon ? "Renew the certificate" : "");
}

}  // namespace sluice
