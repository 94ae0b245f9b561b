#include <ctime>
#include <memory>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/doctor/report/certificate_days.hpp"
#include "net/io/tls.hpp"

namespace sluice {
namespace {

using Status = Check::Status;

}  // namespace

void check_tls(Checks& out, const ServeConfig& config, std::chrono::system_clock::time_point now) {
  const auto add = [&](Status status, std::string finding, std::string fix) {
    out.push_back({status, "tls", std::move(finding), std::move(fix)});
  };
  if (config.tls_certificate.empty()) {
    add(Status::ok, "not used", "");
    return;
  }
  const auto tls = TlsContext::server(config.tls_certificate, config.tls_key);
  if (!tls) {
    add(Status::fail, tls.error().message,
        "Give PEM files that this user can read: the chain that your certificate authority issued, "
        "and its key without a passphrase");
    return;
  }
  const X509* const certificate = SSL_CTX_get0_certificate((*tls)->native());
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate);
  if (X509_cmp_time(X509_get0_notBefore(certificate), &seconds) > 0) {
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
  add(days < kSoonDays ? Status::warn : Status::ok, finding,
      days < kSoonDays ? "Renew the certificate" : "");
}

}  // namespace sluice
