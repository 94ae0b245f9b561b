#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

namespace sluice {

/// Raw JSON: json::value, json::object and json::array are those of Boost.JSON.
namespace json = boost::json;

}  // namespace sluice
