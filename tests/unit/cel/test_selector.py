"""A selector answers for a device as kube-scheduler would."""

from __future__ import annotations

import pytest

from stowage.cel import CelCompileError, CelRuntimeError, Device, Version, compile_selector

DRIVER = "gpu.example.com"
GPU = Device(
    DRIVER,
    {
        "model": "a100",
        "index": 3,
        "healthy": True,
        "driverVersion": Version("535.104.5"),
        "resource.kubernetes.io/pcieRoot": "pci0000:0a",
    },
    {"memory": "80Gi", "other.example.org/bandwidth": "10G"},
)


def matches(expression: str, device: Device = GPU) -> bool:
    return compile_selector(expression).matches(device)


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "gpu.example.com"',
        'device.attributes["gpu.example.com"].model == "a100"',
        'device.attributes["gpu.example.com"].index >= 3',
        'device.attributes["gpu.example.com"].healthy',
        'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:0a"',
        'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0',
        'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))',
        'device.capacity["other.example.org"].bandwidth == quantity("10G")',
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("535.0.0"))',
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.model == "a100" && gpu.healthy)',
        'device.attributes["gpu.example.com"].exists(name, name == "model")',
        '"model" in device.attributes["gpu.example.com"]',
        'has(device.attributes["gpu.example.com"].model)',
        "!device.allowMultipleAllocations",
    ],
)
def test_expressions_of_the_documents_match(expression: str) -> None:
    assert matches(expression)


def test_a_domain_that_the_device_does_not_have_is_an_empty_map() -> None:
    assert matches('device.attributes["unknown.example.com"] == {}')
    assert matches('!has(device.attributes["unknown.example.com"].model)')
    assert matches('!("unknown.example.com" in device.attributes)')
    assert matches('device.capacity["unknown.example.com"].size() == 0')


def test_a_missing_attribute_is_an_error() -> None:
    with pytest.raises(CelRuntimeError, match="no such key: nosuch"):
        matches('device.attributes["gpu.example.com"].nosuch == 1')


def test_or_and_and_absorb_errors() -> None:
    failing = 'device.attributes["gpu.example.com"].nosuch'
    assert matches(f"{failing} || true")
    assert not matches(f"{failing} && false")
    with pytest.raises(CelRuntimeError, match="no such key"):
        matches(f"{failing} || false")


def test_an_attribute_of_another_type_is_not_equal() -> None:
    assert not matches('device.attributes["gpu.example.com"].index == "3"')
    assert matches('device.attributes["gpu.example.com"].index == 3.0')
    assert matches('device.attributes["gpu.example.com"].index == 3u')


def test_a_version_cannot_be_compared_with_text_but_differs_from_it() -> None:
    version = 'device.attributes["gpu.example.com"].driverVersion'
    assert matches(f'{version} == semver("535.104.5")')
    assert matches(f'{version} != "535.104.5"')
    with pytest.raises(CelRuntimeError, match="no such overload"):
        matches(f'{version} == "535.104.5"')


def test_an_attribute_may_be_the_result() -> None:
    assert matches('device.attributes["gpu.example.com"].healthy')
    wrong = {
        "model": "string could not be converted to bool: unsupported native conversion from",
        "driverVersion": "could not be converted to bool: type conversion error from 'Semver'",
    }
    for attribute, text in wrong.items():
        with pytest.raises(CelRuntimeError, match=text):
            matches(f'device.attributes["gpu.example.com"].{attribute}')
    device = Device(DRIVER, {"count": 1})
    text = (
        "CEL result of type int could not be converted to bool: unsupported type conversion from "
    )
    with pytest.raises(CelRuntimeError, match=text + "'int' to bool"):
        matches('device.attributes["gpu.example.com"].count', device)


def test_names_with_the_domain_of_the_driver_are_its_names() -> None:
    device = Device(DRIVER, {f"{DRIVER}/model": "a100"})
    assert matches('device.attributes["gpu.example.com"].model == "a100"', device)


def test_a_device_with_an_attribute_of_an_unknown_type_fails_every_selector() -> None:
    device = Device(DRIVER, {"models": None})
    with pytest.raises(CelRuntimeError, match="attribute models: unsupported attribute value"):
        matches("true", device)


def test_a_device_with_a_malformed_version_fails_every_selector() -> None:
    device = Device(DRIVER, {"version": Version("1.0")})
    with pytest.raises(CelRuntimeError, match="attribute version: parse semantic version"):
        matches("true", device)


def test_a_selector_must_be_bool_or_of_unknown_type() -> None:
    with pytest.raises(CelCompileError, match="must evaluate to bool or the unknown type, not int"):
        compile_selector("1 + 1")
    with pytest.raises(CelCompileError, match="not dyn"):
        compile_selector("dyn(true)")


def test_a_compile_error_shows_the_place() -> None:
    with pytest.raises(CelCompileError) as error:
        compile_selector("true &&\n  device.nosuch")
    assert str(error.value) == (
        "compilation failed: ERROR: <input>:2:9: undefined field 'nosuch'\n"
        " |   device.nosuch\n"
        " | ........^"
    )


def test_a_selector_can_be_used_for_many_devices() -> None:
    selector = compile_selector('device.attributes["gpu.example.com"].model == "a100"')
    others = [Device(DRIVER, {"model": model}) for model in ("a100", "h100", "a100")]
    assert [selector.matches(each) for each in others] == [True, False, True]


def test_adding_to_a_big_decimal_changes_it_for_the_rest_of_the_evaluation() -> None:
    device = Device(DRIVER, {}, {"memory": "1.5Gi", "whole": "1536Mi"})
    wide, narrow = (f'device.capacity["{DRIVER}"].{name}' for name in ("memory", "whole"))
    for _ in range(2):
        assert matches(f"{narrow}.sub(1).isLessThan({narrow})", device)
        assert not matches(f"{wide}.sub(1).isLessThan({wide})", device)
        assert matches(f"{wide} == {narrow}", device)


def test_shared_devices_say_so() -> None:
    assert matches("device.allowMultipleAllocations", Device(DRIVER, {}, {}, True))
