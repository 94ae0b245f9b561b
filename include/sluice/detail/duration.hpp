#pragma once

// Durations and clocks, without the calendars and the formatting of <chrono>, which cost more to
// compile than all of sluice.

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
