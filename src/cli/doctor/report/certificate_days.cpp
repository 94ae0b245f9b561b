#include "cli/doctor/report/certificate_days.hpp"

#include <memory>
#include <openssl/asn1.h>

namespace sluice {

int days_until(const ASN1_TIME* time, std::time_t now) {
  const std::unique_ptr<ASN1_TIME, decltype(&ASN1_STRING_free)> from(ASN1_TIME_set(nullptr, now),
                                                                     &ASN1_STRING_free);
  int days = 0;
  int seconds = 0;
  ASN1_TIME_diff(&days, &seconds, from.get(), time);
  return days;
}

}  // namespace sluice
