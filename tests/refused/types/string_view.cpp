// expect: std::string_view would outlive the JSON it looks at: use std::string
#include <string_view>

#include <sluice/schema.hpp>

struct In {
  std::string_view text;
};
auto schema = sluice::schema_of<In>();
