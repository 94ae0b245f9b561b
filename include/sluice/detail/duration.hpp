#pragma once

// Durations and clocks. Leaves out the calendars and the formatting of <chrono>, which take longer
// to compile than all of sluice.

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
