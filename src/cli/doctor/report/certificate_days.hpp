#pragma once

#include <ctime>
#include <openssl/types.h>

namespace sluice {

/// A certificate that ends sooner should be renewed: what renews certificates by itself does so
/// before.
inline constexpr int kSoonDays = 30;

/// Whole days from `now` until `time`; negative if it has passed.
int days_until(const ASN1_TIME* time, std::time_t now);

}  // namespace sluice
