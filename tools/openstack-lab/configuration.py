"""Writes the configuration of all services; each function returns the sections of one file."""
import configparser
import shutil
import uuid

from place import (AUTH_URL, AZS, ETC, HOST, LOG, OFFSET, PORT, REGION, RUN,
                   STATE, URL, VAR, VENV, secret)
from processes import run

SHARE = VENV / 'etc'
CERTS = VAR / 'octavia' / 'certs'
STORES = ('lab', 'os_glance_staging_store', 'os_glance_tasks_store')
QUIET = ('amqp=WARN,sqlalchemy=WARN,oslo.messaging=INFO,urllib3=WARN,'
         'keystonemiddleware=WARN,stevedore=WARN,oslo_messaging=INFO,'
         'taskflow=WARN')
HEALTH_PORT = 5555 + OFFSET


# --- shared by several services -----------------------------------------------

def db(name):
    return (f'mysql+pymysql://lab:{secret("db")}@{HOST}:{PORT["mariadb"]}/'
            f'{name}?charset=utf8')


def db_options(name):
    return {'connection': db(name), 'max_pool_size': 10, 'max_overflow': 40,
            'connection_recycle_time': 3600}


def user(name, **more):
    """Return credentials of a service user, for any [section] that logs in."""
    return {'auth_type': 'password', 'auth_url': AUTH_URL, 'username': name,
            'password': secret(name), 'project_name': 'service',
            'user_domain_name': 'Default', 'project_domain_name': 'Default',
            'region_name': REGION, **more}


def common(name):
    """Return the sections of a service that checks tokens and uses the message bus."""
    transport = (f'rabbit://lab:{secret("rabbit")}@{HOST}:{PORT["rabbitmq"]}'
                 f'//')
    return {
        'DEFAULT': {'transport_url': transport, 'use_stderr': True,
                    'state_path': VAR / name, 'debug': False,
                    'default_log_levels': QUIET},
        'database': db_options(name),
        'oslo_concurrency': {'lock_path': VAR / name / 'lock'},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'oslo_middleware': {'enable_proxy_headers_parsing': True},
        'keystone_authtoken': user(
            name, www_authenticate_uri=AUTH_URL,
            memcached_servers=f'{HOST}:{PORT["memcached"]}',
            service_token_roles='service', service_token_roles_required=True),
    }


def unlimited(pattern, kinds):
    return {pattern.format(kind): -1 for kind in kinds.split()}


# --- the services -----------------------------------------------------------

def keystone():
    c = common('keystone')
    del c['keystone_authtoken'], c['DEFAULT']['state_path']
    return c | {
        'token': {'provider': 'fernet', 'expiration': 14400},
        'fernet_tokens': {'key_repository': VAR / 'keystone' / 'fernet'},
        'credential': {'key_repository': VAR / 'keystone' / 'credential'},
        'identity': {'password_hash_rounds': 4},
        'cache': {'enabled': True, 'backend': 'dogpile.cache.pymemcache',
                  'memcache_servers': f'{HOST}:{PORT["memcached"]}'},
    }


def placement():
    c = common('placement')
    c['placement_database'] = c.pop('database')
    return c


def glance():
    c = common('glance')
    del c['DEFAULT']['state_path']
    c['DEFAULT'] |= {
        'enabled_backends': 'lab:file', 'enabled_import_methods': '[]',
        'node_staging_uri': f'file://{VAR}/glance/staging'}
    for store in STORES:
        c[store] = {'filesystem_store_datadir': VAR / 'glance' / store}
    return c | {
        'glance_store': {'default_backend': 'lab'},
        'paste_deploy': {
            'flavor': 'keystone',
            'config_file': SHARE / 'glance' / 'glance-api-paste.ini'},
    }


def neutron():
    c = common('neutron')
    c['DEFAULT'] |= {
        'core_plugin': 'ml2', 'service_plugins': 'lab_router,trunk',
        'api_paste_config': SHARE / 'neutron' / 'api-paste.ini',
        'dhcp_agent_notification': False, 'max_allowed_address_pair': 200,
        'notify_nova_on_port_status_changes': True,
        'notify_nova_on_port_data_changes': True, 'send_events_interval': 1}
    return c | {
        'ml2': {'type_drivers': 'flat,vlan,vxlan',
                'tenant_network_types': 'vxlan', 'mechanism_drivers': 'lab',
                'extension_drivers':
                    'port_security,uplink_status_propagation,'
                    'dns_domain_ports'},
        'ml2_type_flat': {'flat_networks': 'public'},
        'ml2_type_vlan': {'network_vlan_ranges': 'physnet1:100:2000'},
        'ml2_type_vxlan': {'vni_ranges': '1:10000'},
        'quotas': unlimited('quota_{}', 'network subnet port router floatingip'
                            ' security_group security_group_rule trunk'),
        'nova': user('neutron'),
        'placement': user('neutron'),
    }


def cinder():
    """Configure one backend per availability zone."""
    c = common('cinder')
    paste = SHARE / 'cinder'
    c['DEFAULT'] |= {
        'enabled_backends': ','.join(AZS), 'my_ip': HOST,
        'api_paste_config': paste / 'api-paste.ini',
        'resource_query_filters_file': paste / 'resource_filters.json',
        'default_availability_zone': AZS[0],
        'glance_api_servers': URL['glance'], 'host': 'lab',
        **unlimited('quota_{}', 'volumes gigabytes snapshots')}
    for az in AZS:
        c[az] = {'volume_driver': 'labdrivers.cinder.LabVolumeDriver',
                 'volume_backend_name': az, 'backend_availability_zone': az}
    return c | {
        'coordination': {'backend_url': f'file://{VAR}/cinder/coordination'},
        'nova': user('cinder', interface='public'),
        'service_user': user('cinder', send_service_user_token=True),
    }


def nova():
    c = common('nova')
    c['DEFAULT'] |= {
        'my_ip': HOST, 'compute_driver': 'virt_lab.LabDriver',
        'instances_path': VAR / 'nova' / 'instances',
        'report_interval': 5, 'service_down_time': 20,
        'sync_power_state_interval': -1,
        'heal_instance_info_cache_interval': -1,
        'reclaim_instance_interval': 0, 'vif_plugging_is_fatal': False,
        'vif_plugging_timeout': 0, 'allow_resize_to_same_host': True,
        'block_device_allocate_retries': 120,
        'block_device_allocate_retries_interval': 1}
    return c | {
        'api_database': db_options('nova_api'),
        'wsgi': {'api_paste_config': SHARE / 'nova' / 'api-paste.ini'},
        'quota': unlimited('{}', 'instances cores ram key_pairs server_groups'
                           ' server_group_members'),
        'neutron': user('nova'), 'placement': user('nova'),
        'keystone': user('nova'), 'glance': {'region_name': REGION},
        'cinder': user('nova', os_region_name=REGION,
                       catalog_info='block-storage::publicURL'),
        'service_user': user('nova', send_service_user_token=True),
        'vnc': {'enabled': False},
        'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': -1},
        'conductor': {'workers': 1},
        'filter_scheduler': {'available_filters':
                             'nova.scheduler.filters.all_filters'},
    }


def compute(az):
    """Configure a compute host, which has no access to the databases."""
    c = nova()
    del c['database'], c['api_database']
    c['DEFAULT'] |= {'host': f'compute-{az}',
                     'state_path': VAR / f'nova-compute-{az}'}
    return c


def octavia():
    """Configure the amphora provider, without amphorae."""
    c = common('octavia')
    del c['DEFAULT']['state_path']
    for section in ('neutron', 'nova', 'glance', 'cinder'):
        c[section] = {'region_name': REGION}
    return c | octavia_drivers() | {
        'api_settings': {
            'enabled_provider_drivers':
                'amphora:Amphora provider,octavia:Alias of amphora',
            'default_provider_driver': 'amphora',
            'allow_tls_terminated_listeners': True},
        'health_manager': {
            'heartbeat_key': secret('heartbeat'), 'bind_ip': HOST,
            'bind_port': HEALTH_PORT,
            'controller_ip_port_list': f'{HOST}:{HEALTH_PORT}'},
        'oslo_messaging': {'topic': 'octavia_prov'},
        'quotas': unlimited('default_{}_quota', 'load_balancer listener member'
                            ' pool health_monitor l7policy l7rule'),
        'service_auth': user('octavia'),
    }


def octavia_drivers():
    ca = CERTS / 'ca.pem'
    return {
        'certificates': {
            'cert_generator': 'local_cert_generator',
            'cert_manager': 'noop_cert_manager',
            'ca_certificate': ca, 'ca_private_key': CERTS / 'ca.key',
            'ca_private_key_passphrase': secret('octavia-ca'),
            'server_certs_key_passphrase': secret('octavia-certs')},
        'haproxy_amphora': {'server_ca': ca, 'client_cert': ca},
        'controller_worker': {
            'client_ca': ca,
            'workers': 1, 'amp_image_tag': 'amphora', 'amp_flavor_id': '1',
            'amp_boot_network_list': '00000000-0000-0000-0000-000000000000',
            'loadbalancer_topology': 'SINGLE',
            'amphora_driver': 'amphora_noop_driver',
            'compute_driver': 'compute_lab_driver',
            'network_driver': 'network_lab_driver',
            'image_driver': 'image_noop_driver',
            'volume_driver': 'volume_noop_driver'},
    }


# --- files ------------------------------------------------------------------

FILES = {'keystone/keystone': keystone, 'placement/placement': placement,
         'glance/glance-api': glance, 'neutron/neutron': neutron,
         'cinder/cinder': cinder, 'nova/nova': nova,
         'octavia/octavia': octavia}


def configure():
    """Write every file and create every folder that the services read."""
    for directory in (ETC, LOG, RUN, VAR, STATE):
        directory.mkdir(parents=True, exist_ok=True)
    for name, sections in FILES.items():
        service = name.split('/')[0]
        (VAR / service / 'lock').mkdir(parents=True, exist_ok=True)
        write_ini(ETC / f'{name}.conf', sections())
    for store in STORES:
        (VAR / 'glance' / store).mkdir(parents=True, exist_ok=True)
    shutil.copy(SHARE / 'nova' / 'api-paste.ini', ETC / 'nova')
    for az in AZS:
        write_ini(ETC / 'nova' / f'compute-{az}.conf', compute(az))
        name_host(az)
    make_certificates()


def write_ini(path, sections):
    ini = configparser.RawConfigParser(default_section='none')
    ini.optionxform = str
    for section, options in sections.items():
        ini[section] = {k: str(v) for k, v in options.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'w') as out:
        ini.write(out)


def name_host(az):
    """Write the host's id; Nova refuses a known host without this file, as
    after a stop during its very first start."""
    identity = VAR / f'nova-compute-{az}' / 'compute_id'
    identity.parent.mkdir(exist_ok=True)
    if not identity.exists():
        identity.write_text(str(uuid.uuid4()))


def make_certificates():
    if (CERTS / 'ca.pem').exists():
        return
    CERTS.mkdir(parents=True, exist_ok=True)
    run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-days', '3650',
         '-passout', f'pass:{secret("octavia-ca")}', '-subj', '/CN=lab',
         '-keyout', CERTS / 'ca.key', '-out', CERTS / 'ca.pem'], 'setup')
